"""The regret of a table on problems that were not used to make it.

Random sizes, process counts and patterns are measured anew. Two launches of all methods name the
few that may be the best of a problem; further launches measure them, the library's choice by the
table, and the choices of other rules and of a rival table, until they would show a difference of
5 %. Each choice is compared with the fastest of them. Noise makes regret larger, never smaller;
what an oracle loses that chooses by half of the launches says by how much. Measurements are used as
they are.
"""
