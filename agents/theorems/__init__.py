"""The paper's claims as experiments: one topic a file, `report` runs them all and writes what they found."""
