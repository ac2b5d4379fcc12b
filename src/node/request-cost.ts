/**
 * The cost of each request at a node: the table of all that a client or a caller over HTTP can ask. A kind
 * that is not in it does not compile.
 *
 * COST-6  Every kind of request has a cost.
 *
 * `begin` is done in one turn, the one that takes the request up, in the units of `ports/slices.ts`; `bytes`
 * are held until it is answered. After the beginning a request goes on in steps. It pays for each step when
 * it does it (`Pace`), so this table has only the bounds of those steps.
 */
import { assert } from '../base/assert.ts'
import { packedPartWork } from '../cells/limits.ts'
import { requestBytes } from '../wire/client/client-bytes.ts'
import { writtenBytes, type Operation } from '../wire/client/client-message.ts'

export interface Cost {
  readonly begin: number
  readonly bytes: number
}

type Kind = Operation['kind']
type Costs = {
  readonly [Of in Kind]: (operation: Extract<Operation, { readonly kind: Of }>) => Cost
}

/** A request with its answer's place, its promises and its timers. */
const requestOwnBytes = 1024
/**
 * One place of a log that a client waits for: the request for it, its page so far, its record among the
 * waits.
 */
const waitingPlaceBytes = 256
/** A read of one shard, row or group that is looked up at once. */
const readWork = 4
/** A proposal, with the packing and comparing that it needs. */
const proposalWork = 10
const bytesPerWork = 4 * 1024

const costs: Costs = {
  // One body alone is checked where it is put; the bodies of a batch, and their proposals, are steps.
  put: (operation) => ({
    begin: operation.items.length === 1 ? proposalWork : listWork(operation.items.length),
    bytes: requestOwnBytes + requestBytes(operation),
  }),
  // One cell is read at once; of a batch each is a step.
  get: (operation) => ({
    begin: operation.items.length === 1 ? readWork : listWork(operation.items.length),
    bytes: requestOwnBytes + requestBytes(operation),
  }),
  // Each column, each chunk of versions is a step.
  row: () => ({ begin: readWork, bytes: requestOwnBytes }),
  versions: () => ({ begin: readWork, bytes: requestOwnBytes }),
  // Each place that is read is a step; while it waits there are none.
  log: (operation) => ({
    begin: listWork(operation.items.length + operation.read.atLeast.length),
    bytes: requestOwnBytes + operation.items.length * waitingPlaceBytes,
  }),
  // A page of the log, read and removed by one transaction.
  purge: ({ limit }) => ({ begin: proposalWork, bytes: requestOwnBytes + limit * requestOwnBytes }),
  // Each page of entries is a step, and each row whose cells are read.
  index: (operation) => ({
    begin: readWork + listWork(operation.where.length),
    bytes: requestOwnBytes,
  }),
  // One transaction in each replica set.
  'spread-indexes': () => ({ begin: proposalWork, bytes: requestOwnBytes }),
  // Lasts a second at most, in transactions of its own.
  'drop-index': () => ({ begin: proposalWork, bytes: requestOwnBytes }),
  // Some rows at a time are a step, and so is a page of the range.
  'read-group': (operation) => ({
    begin: readWork + listWork(operation.keys.length),
    bytes: requestOwnBytes + requestBytes(operation),
  }),
  // One transaction, proposed at once.
  'commit-group': (operation) => ({
    begin:
      proposalWork +
      listWork(operation.submission.mutations.length + operation.submission.reads.length) +
      writtenBytes(operation) / bytesPerWork,
    bytes: requestOwnBytes + requestBytes(operation),
  }),
  'outcome-group': () => ({ begin: readWork, bytes: requestOwnBytes }),
  // Each waiting request holds a timer.
  'lock-group': () => ({ begin: 1, bytes: requestOwnBytes }),
  'unlock-group': () => ({ begin: 1, bytes: requestOwnBytes }),
  // One scan of names, `listedGroupsMax` at most.
  'list-groups': () => ({ begin: readWork, bytes: requestOwnBytes }),
  'pass-group': ({ operation }) => computeCost(operation),
  // A page of rows as they are stored.
  'export-group': () => ({ begin: proposalWork, bytes: requestOwnBytes }),
  // One transaction here, and one in the other set.
  'move-group': () => ({ begin: 2 * proposalWork, bytes: requestOwnBytes }),
  'admit-group': () => ({ begin: readWork, bytes: requestOwnBytes }),
  // One transaction in the own group of the set.
  'open-buckets': () => ({ begin: proposalWork, bytes: requestOwnBytes }),
  'locate-group': () => ({ begin: readWork, bytes: requestOwnBytes }),
  // Each group is looked at, which is a step.
  'list-worklist': () => ({ begin: readWork, bytes: requestOwnBytes }),
  // Each waiting request holds a timer; reading a change for it is a step.
  'watch-worklist': () => ({ begin: 1, bytes: requestOwnBytes }),
  // Each group is a step, and each page of its rows.
  'sum-worklist': () => ({ begin: readWork, bytes: requestOwnBytes }),
  cancel: () => ({ begin: 1, bytes: requestOwnBytes }),
  // All figures of the node, packed.
  status: () => ({ begin: 100, bytes: requestOwnBytes }),
}

export function computeCost<Of extends Kind>(
  operation: Extract<Operation, { readonly kind: Of }> & { readonly kind: Of },
): Cost {
  const of: Costs[Of] = costs[operation.kind]
  const cost = of(operation)
  assert(cost.begin > 0 && cost.bytes > 0, 'COST-6: a request costs nothing')
  return cost
}

/** Kinds that may wait in a lane once they are taken up. The lane counts the work that they begin. */
const laneKinds: ReadonlySet<Kind> = new Set<Kind>(['put', 'get', 'commit-group'])
/** To look at one, and to have it wait or refuse it. */
const lookWork = 1

/**
 * The work of taking a request up. One proposal, or a read of one cell, pays when it begins (`admission.ts`).
 * If it paid here with its part of a turn, requests to be refused would wait as long as the others.
 */
export function computeIntakeWork(operation: Operation): number {
  const { begin } = computeCost(operation)
  return begin <= 2 * proposalWork && laneKinds.has(operation.kind) ? lookWork : begin
}

/** The work of unpacking `count` parts and looking at them. */
function listWork(count: number): number {
  return 1 + count * packedPartWork
}
