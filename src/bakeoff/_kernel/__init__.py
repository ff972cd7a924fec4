"""Small general tools, independent of cases, subjects and trials."""
