-- Ratios have standard errors, by which choices are inferred for other layouts: campaigns are decided anew by
-- the next `tune`. Until then the ratios of tables have none.
DELETE FROM decision;
UPDATE launch SET decided = 0;
