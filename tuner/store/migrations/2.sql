-- The method table of a system, as chosen from its cells.
CREATE TABLE tuned (
  system TEXT PRIMARY KEY REFERENCES system (id),
  provenance TEXT NOT NULL    -- JSON of tuner.records.Provenance
);

-- What was decided at each measured size of each degree class. With `system`, `campaign` to `bytes`
-- and a method lead to the cell behind it.
CREATE TABLE point (
  system TEXT NOT NULL REFERENCES tuned (system),
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
  status TEXT NOT NULL,       -- faster, default, tie or undecided
  challenger TEXT,            -- the method of the ratio; the selected one when it is faster
  ratio REAL,                 -- its time / time of the default
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL
);

CREATE INDEX point_system ON point (system, operation, nodes, ppn, mmax, mavg, bytes);

-- The rules in order of priority; NULL is unbounded. What follows `method` is the weakest of the
-- points that the rule rests on.
CREATE TABLE rule (
  system TEXT NOT NULL REFERENCES tuned (system),
  rank INTEGER NOT NULL,
  operation TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  mmax_low INTEGER,
  mmax_high INTEGER,
  mavg_low REAL,
  mavg_high REAL,
  bytes_low INTEGER,
  bytes_high INTEGER,
  method TEXT NOT NULL,
  campaign TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  status TEXT NOT NULL,
  challenger TEXT,
  ratio REAL,
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL,
  PRIMARY KEY (system, rank)
);
