"""What ``stator advise`` and ``stator scale`` print, and the options that they share."""
