"""Seconds that the parts of a campaign take or may take, and the periods of its progress."""

BUILD_S = 25.0  # of the kernels, for one environment on two cores
SESSION_S = 6.0  # ReFrame's own work for a session
JOB_S = 0.5  # ReFrame's own work for a job
LEAST_LAUNCH_S = 0.3  # the least budget of a launch
BEYOND_S = 30.0  # that the time limit of a job grants a launch beyond its budget
SOAKS_S = 15.0  # kept for the soaks of the winners, and ReFrame's work on them
MOST_SOAKS_S = 30.0  # limit of all soaks of a fixed campaign; they seldom take half of that
HANG_LIMIT_S = 20.0  # without progress, a soaked method hangs
SOAK_LIMIT_S = 90.0  # of a soak's launch, beyond its budget; it has time to find a hang

POLL_S = 0.5  # between looks at whether ReFrame has ended
BAR_S = 1.0  # between updates of a bar; more frequent ones would disturb measurements
LINE_S = 10.0  # between lines, where there is no terminal
