"""Small tools that know nothing of trials."""
