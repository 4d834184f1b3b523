"""Commands of the command line, one module each: arguments, examples, fields of the JSON output, and the run."""
