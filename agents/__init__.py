"""Players of the debate, learned and scripted, and what is measured of them."""
