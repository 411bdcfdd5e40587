"""Words become objects once: what can be configured, the project file, composition, the settings of an arm."""
