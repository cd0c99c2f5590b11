-- What a launch of overlap measured of one method with one amount of computation.
CREATE TABLE overlap (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  pattern TEXT NOT NULL,
  method TEXT NOT NULL,
  flops INTEGER NOT NULL,         -- of one rank
  full_flops INTEGER NOT NULL,    -- of full rows
  messages INTEGER NOT NULL,      -- of one rank to others
  message_bytes INTEGER NOT NULL, -- of the longest
  samples INTEGER NOT NULL,
  total_s REAL NOT NULL,          -- medians over the samples, from here on
  computation_s REAL NOT NULL,
  initiation_s REAL NOT NULL,
  wait_s REAL NOT NULL,
  barrier_s REAL NOT NULL,
  alone_s REAL NOT NULL,          -- the computation without communication
  PRIMARY KEY (system, campaign, procs, nodes, ppn, oversubscribed, launch, pattern, method, flops)
) WITHOUT ROWID;

CREATE INDEX overlap_launch ON overlap (launch);
