-- Ratios have their standard errors, by which open sizes take methods of other layouts: campaigns are
-- decided anew by the next `tune`. Tables have none until then.
DELETE FROM decision;
UPDATE launch SET decided = 0;
