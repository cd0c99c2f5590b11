-- What a campaign alone decides at each measured size, as `point`, whatever became of soaks.
CREATE TABLE decision (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  method TEXT NOT NULL,
  status TEXT NOT NULL,
  challenger TEXT,
  ratio REAL,
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL,
  ratios TEXT NOT NULL         -- JSON: of every other method its time / time of the default
);

CREATE INDEX decision_campaign ON decision (system, campaign, operation);

-- Whether the decisions of its campaign have regard to a launch.
ALTER TABLE launch ADD COLUMN decided INTEGER NOT NULL DEFAULT 0;

-- As in `decision`.
ALTER TABLE point ADD COLUMN ratios TEXT NOT NULL DEFAULT '{}';
ALTER TABLE rule ADD COLUMN ratios TEXT NOT NULL DEFAULT '{}';
