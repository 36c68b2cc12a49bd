"""Integers in, integers out: the only floor that turns true counts into noisy ones."""
