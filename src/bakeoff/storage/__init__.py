"""Read and write the files of a run: journal, blobs, run folder, redaction."""
