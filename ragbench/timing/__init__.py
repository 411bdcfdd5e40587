"""How long a query takes: one at a time, under load, and in a fresh process."""
