-- What a decision rests on, beside its ratio: the probability of the interval, the most that the
-- default may lose as a share of the best time, and what would settle an open size. An open size that
-- is `filled` takes the method of its neighbours.
ALTER TABLE point ADD COLUMN level REAL;
ALTER TABLE point ADD COLUMN may_lose REAL;
ALTER TABLE point ADD COLUMN more_launches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE point ADD COLUMN more_s REAL NOT NULL DEFAULT 0;
ALTER TABLE point ADD COLUMN filled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rule ADD COLUMN level REAL;
ALTER TABLE rule ADD COLUMN may_lose REAL;
ALTER TABLE rule ADD COLUMN more_launches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rule ADD COLUMN more_s REAL NOT NULL DEFAULT 0;
ALTER TABLE rule ADD COLUMN filled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decision ADD COLUMN level REAL;
ALTER TABLE decision ADD COLUMN may_lose REAL;
ALTER TABLE decision ADD COLUMN more_launches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decision ADD COLUMN more_s REAL NOT NULL DEFAULT 0;
ALTER TABLE decision ADD COLUMN filled INTEGER NOT NULL DEFAULT 0;

-- Earlier tables are readable: what was not shown is open, and ratios of others have no intervals.
UPDATE point SET level = 0.95 WHERE ratio_low IS NOT NULL;
UPDATE rule SET level = 0.95 WHERE ratio_low IS NOT NULL;
UPDATE point SET status = 'open' WHERE status IN ('tie', 'undecided');
UPDATE rule SET status = 'open' WHERE status IN ('tie', 'undecided');
UPDATE point SET ratios = (SELECT json_group_object(key, json_array(value)) FROM json_each(ratios));
UPDATE rule SET ratios = (SELECT json_group_object(key, json_array(value)) FROM json_each(ratios));

-- Campaigns are decided anew by the next `tune`.
DELETE FROM decision;
UPDATE launch SET decided = 0;
