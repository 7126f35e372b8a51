# mdoc pages are added here as they are written.
