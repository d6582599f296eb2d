"""blueprint."""
