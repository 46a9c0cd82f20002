w[-1..1]
w[0]|pos[0]
label[-1]
w.suffix2.lower[0]
w.test("^[A-Z]")[0]
bias
