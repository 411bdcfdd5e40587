"""Effects of changes on other collections, shipped as tables: what they let a run on few queries expect.

changes.yaml        the changes by name, and the overrides that make each
collections.csv     what was measured on: kind, questions, sizes, digests
effects.csv         collection, base, change, topics, mean, effect, error, better, worse (nDCG@10 of documents)
"""
