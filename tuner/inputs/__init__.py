"""What an exchange is made from: matrices, their partitions, patterns."""
