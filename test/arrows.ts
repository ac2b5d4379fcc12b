/**
 * Which folders each folder imports: no more, and no fewer. A line is a folder of src or a top folder, and
 * the folders that it imports; `src` is the public list of names at the top of src. The lines are in the
 * order of the layers: a folder imports only what stands above it.
 *
 * The wing of the protocol (paxos to replica) and the wing of the data (txn to triggers) know nothing of
 * one another. Both stand on `group`, which imports `base` alone, and meet in `node`.
 */
const drawing = `
base
schema       base
ports        base
journal      base ports
group        base
time         base ports
paxos        base
placement    base
lease        base
replication  base ports group paxos placement lease
store        base ports group replication
log          base ports paxos replication store
peers        base ports group placement lease replication store log
members      base ports group paxos placement lease replication log peers
replica      base ports group time paxos placement lease replication store log peers members
txn          base ports group time
worklist     base ports group time txn
queues       base ports group txn worklist
indexes      base ports time txn
tables       base schema ports group time txn worklist queues indexes
cells        base schema ports group time txn worklist indexes tables
wire         base ports group
wire/peer    base paxos lease replication wire
wire/client  base group txn worklist cells wire
adapters     base ports txn wire
inspect      base ports journal group paxos replication store log adapters
config       base cells adapters
client       base schema ports group time txn worklist queues indexes tables cells wire
             wire/client adapters
triggers     base schema ports time txn tables cells adapters client
node         base ports journal group time members placement replication store peers replica txn worklist
             queues tables cells wire wire/peer wire/client adapters config client
gateway      base ports txn cells wire/client adapters config client node
cli          base schema txn queues indexes tables cells adapters inspect config client triggers
             node gateway
src          base group txn queues indexes tables cells client
docs         triggers src
sim          base schema ports journal group time paxos placement lease replication store log peers
             members replica txn worklist queues indexes tables cells wire/peer wire/client adapters
             inspect client triggers node gateway cli
bench        base schema placement store txn queues tables cells adapters client triggers cli sim
test         base schema ports journal group members time paxos placement lease replication store log
             peers replica txn worklist queues indexes tables cells wire wire/peer wire/client
             adapters inspect config client triggers node gateway cli src sim bench
`

/** Folders of src that have a line of their own inside another folder. */
export const nestedFolders: ReadonlySet<string> = new Set(['wire/peer', 'wire/client'])

export const protocolWing: readonly string[] = [
  ...['paxos', 'placement', 'lease', 'replication', 'store', 'log', 'peers'],
  ...['members', 'replica'],
]
export const dataWing: readonly string[] = [
  ...['txn', 'worklist', 'queues', 'indexes', 'tables', 'cells', 'triggers', 'client'],
]

export const arrows: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  drawing
    .replaceAll(/\n +/g, ' ')
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/))
    .map(([folder = '', ...imported]) => [folder, imported]),
)
