"""What is known of every change from other collections, shipped as tables, and what that lets a small vault expect.

changes.yaml        the changes by name, and the overrides that make each
collections.csv     what was measured on: kind, questions, sizes, digests
effects.csv         collection, base, change, topics, mean, effect, error, better, worse (nDCG@10 of documents)
"""
