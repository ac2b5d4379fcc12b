/** What each rule says, for those who do not know them by number. */

const rules: Readonly<Record<string, string>> = {
  'PAX-1': 'At most one value is ever chosen at a position, and it never changes.',
  'PAX-2': 'A promise, as the disk holds it, never goes back.',
  'PAX-3': 'A ballot is accepted only at or above the promise.',
  'PAX-4': 'What an answer claims is durable before the answer leaves.',
  'PAX-5': 'One ballot, one value; after phase 1 the value accepted at the highest ballot.',
  'PAX-6': 'Ballot zero belongs to the leader that the chosen entry before names.',
  'PAX-7': 'Quorums are majorities of the voters.',
  'LOG-1': 'A position is applied after all before it, and what is applied was chosen.',
  'LOG-2': 'The same applied position means the same rows and state, byte for byte.',
  'LOG-3': 'An intent is in effect at most once.',
  'LOG-4': 'An acknowledged commit is chosen, and stays.',
  'LOG-5': 'A no-op stands only where nothing was or can be chosen.',
  'LOG-6': 'The applied position and the rows are written in one batch.',
  'LEASE-3': 'A current read sees every commit acknowledged before it began.',
  'LEASE-4': 'A read shows one state, whole, and a session never sees less than it has seen.',
  'MVCC-1':
    'A read at a timestamp sees exactly the commits up to it, for as long as it is permitted.',
  'MVCC-2': 'Timestamps rise strictly with the position.',
  'TXN-1': 'Transactions of a group fit one order, which sessions and real time fit too.',
  'TXN-2': 'Absent keys and ranges that a transaction has read are unchanged when it takes effect.',
  'TXN-4': 'All of a transaction takes effect, or none of it.',
  'TXN-5': 'A transaction takes effect once, and its caller is told truthfully what came of it.',
  'IDX-1': 'The entries of an index are what the rows say, at every moment.',
  'CELL-1': 'A cell never changes, and none is shown that nobody wrote.',
  'CELL-2': 'Newest is the highest ref key, on every path.',
  'CELL-3':
    'Added ids rise in the order in which cells can be seen, without gaps but those of purges.',
  'CELL-4': 'A put takes effect at most once, and its caller is told truthfully what came of it.',
  'CELL-5': 'What a session has seen it sees again, whichever replica answers.',
  'CELL-6': 'A body comes back as it was given however its bytes are stored.',
  'CELL-7': 'A purged cell is gone for good: it is not seen, and not written again.',
  'CELL-8': 'A purge removes what it names and nothing else.',
  'LIVE-1': 'In a healed world everything that was begun comes to an end.',
  'LIVE-2': 'In a healed world every replica can be read.',
  'LIVE-3': 'In a healed world no replica stays behind; none starts behind its own log.',
  'LIVE-4': 'In a healed world no hole is left open.',
  'LIVE-5': 'Messages are bounded: there is no storm.',
  'META-1': 'The same plan takes the same course, however often it is run.',
  'META-3': 'Nothing fails that nobody expects.',
}

export function describeRule(rule: string): string {
  return rules[rule] ?? 'See the list of rules.'
}

/** The first of these that no checker and no assertion knows. */
export function unknownRuleOf(ids: readonly string[]): string | undefined {
  return ids.find((id) => !Object.hasOwn(rules, id))
}
