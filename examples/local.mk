# Programs are added here as they are written.
