"""What a crash, a ban, a person or the years can leave behind, and how each kind of it is put right.

``intents`` ends what an account has begun; ``take_over`` lets another account do so; ``reconcile`` looks for
what was sent and is the only place that deletes; ``replan`` cuts anew what was never sent; ``abandonment``
gives up. ``withdrawal`` compares packages with the destination, ``strays`` looks for what no row knows and
``adopting`` makes packages of what is ours among it, by the ``authority`` that tells whose a message is;
``left_over`` removes what ended uploads left, ``leftovers`` sweeps what dead processes held. ``account`` says
in which order one leased account does all that, and ``findings`` what came of it. ``errand``, ``restore`` and
``metadata`` serve what is published already.

Everything here may be killed at any point and run again, beside any number of others doing the same: whatever
touches a content holds its lock, whatever writes carries a fence, and what is decided is written down before
it is done.
"""
