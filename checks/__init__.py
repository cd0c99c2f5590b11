"""The ReFrame checks that run the campaigns."""
