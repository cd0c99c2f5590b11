-- What became of a method that a launch executed very often at one size.
CREATE TABLE soak (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  method TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  executions INTEGER NOT NULL,    -- complete and verified
  passed INTEGER NOT NULL,
  reason TEXT NOT NULL,           -- what was found, "" when passed
  PRIMARY KEY (system, campaign, procs, nodes, ppn, oversubscribed, launch, operation, pattern, method,
               size_bytes)
) WITHOUT ROWID;

CREATE INDEX soak_launch ON soak (launch);
