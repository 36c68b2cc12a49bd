"""Pictures of releases: one style, one file per kind of picture.

Nothing else imports matplotlib.
"""
