/*
 * C11's memory, as far as the protocols use it. Data are written by one rank and read by others. A number is
 * written by one rank, counts up, is stored with release and loaded with acquire. Who waits for a call may load
 * a later number too, and then knows more: the model has it load the first that will do.
 *
 * What happened before is a set of facts: that a rank knows of the last write of some data, or of the last read
 * by one of its readers. An access without knowing of one that it conflicts with is a race, in whatever order
 * the two take place.
 */
#define WRITTEN(datum) (1 << ((datum) * (READERS + 1)))
#define READ(datum, reader) (WRITTEN(datum) << ((reader) + 1))
#if DATA * (READERS + 1) > 32
#error "an int has too few bits for so many facts"
#endif

/* What a wait makes known does not depend on when it ends: so a rank may run on until it must wait. */
#ifndef RUN
#define RUN atomic
#endif

byte contents[DATA];                     /* the call whose data they are */
byte numbers[NUMBERS];
int knows[RANKS] = -1;                   /* facts, of each rank; at first nothing has happened */
int released[NUMBERS * (LAST + 1)] = -1; /* what comes with each value of a number */
hidden byte i;
hidden int fact;

inline happen() {
  for (i : 0 .. RANKS - 1) { knows[i] = knows[i] & ~fact }
  for (i : 0 .. NUMBERS * (LAST + 1) - 1) { released[i] = released[i] & ~fact }
  knows[me] = knows[me] | fact
}

inline write(datum, call) {
  d_step {
    for (i : 0 .. READERS - 1) { assert(knows[me] & READ(datum, i)) }
    fact = WRITTEN(datum);
    happen();
    contents[datum] = call
  }
}

inline read(datum, reader, call) {
  d_step {
    assert(knows[me] & WRITTEN(datum));
    assert(contents[datum] == call);
    fact = READ(datum, reader);
    happen()
  }
}

inline reach(number, call) {
  d_step {
    released[(number) * (LAST + 1) + call] = knows[me];
    numbers[number] = call
  }
}

inline await(number, call) {
  d_step {
    numbers[number] >= call;
    knows[me] = knows[me] | released[(number) * (LAST + 1) + call]
  }
}
