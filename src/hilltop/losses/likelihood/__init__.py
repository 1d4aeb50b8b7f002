"""Observation models: likelihoods of the labels that are there, and the choice between them."""
