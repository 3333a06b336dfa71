"""How robust models are to what nobody optimised: neighbouring frames, corruptions, tampering.

The numbers of one run are in its summary; here are those that need several runs of one model: means
over types and severities, worst cases over neighbours, and what they have to do with each other
over models. All of it is computed from records.
"""
