"""Looks customers up in a dictionary, few of them often, as a program that keeps accounts does. Prints what
came of it."""

import hashlib
import random

random.seed(1)
accounts = {f"customer {number}": [number] for number in range(200_000)}
names = list(accounts)
random.shuffle(names)
total = 0
for _ in range(400_000):
    name = names[int(len(names) * random.random() ** 8)]
    accounts[name][0] += len(name)
    total += accounts[name][0]
print(total, hashlib.sha1(repr(sorted(accounts.items())).encode()).hexdigest())
