"""How a server reads reports: the density of the points, clusters, and what is known of them."""
