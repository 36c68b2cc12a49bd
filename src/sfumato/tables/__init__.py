"""Families of tables that add up."""
