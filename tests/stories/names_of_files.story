# Proves that tables hold no ref that git keeps in a file of its own.
repo reftable
refused FETCH_HEAD = 1 because badname
