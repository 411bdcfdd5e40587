"""Files for production: configurations of other systems, bundles that run elsewhere, and checks of both."""
