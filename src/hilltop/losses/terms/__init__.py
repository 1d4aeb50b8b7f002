"""Terms of Eq. 1: the maths, positive and negative terms, and corrections."""
