"""Arrays in, figures out: one house style, one file per kind of picture. The only place that imports matplotlib."""
