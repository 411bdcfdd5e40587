"""What a person ships: configuration files of other systems, bundles that run elsewhere, and checks of both."""
