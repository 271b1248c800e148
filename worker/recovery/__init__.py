"""What a crash can leave behind, and how each kind of it is put right."""
