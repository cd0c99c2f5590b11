-- Whether a winner is shown to be faster where ranks arrive apart, too.
ALTER TABLE point ADD COLUMN staggered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rule ADD COLUMN staggered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decision ADD COLUMN staggered INTEGER NOT NULL DEFAULT 0;

-- Campaigns are decided anew by the next `tune`.
DELETE FROM decision;
UPDATE launch SET decided = 0;
