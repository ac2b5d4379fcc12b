/** How each kind of fault is drawn: whom it strikes, and for how long. */
import { present } from '../../src/base/assert.ts'
import { hiddenEvery, type DiskName, type Fault, type Way } from './fault.ts'
import type { SeededRandom } from '../world/random.ts'
import type { FaultRates } from './swarm-faults.ts'

/** The parts that a drawing can use. */
export interface Draw {
  readonly rates: FaultRates
  readonly random: SeededRandom
  readonly nodes: readonly string[]
  /** Nodes that no set begins with. */
  readonly spares: readonly string[]
  /** The nodes of each replica set. */
  readonly sets: readonly (readonly string[])[]
  /** Gateways are among them. */
  readonly clients: readonly string[]
  readonly gateways: readonly string[]
}

/** The faults that one moment brings. */
export type Drawing = (atMicros: number, draw: Draw) => readonly Fault[]

const million = 1_000_000
const half = 500_000
/** Crashes of one loop. */
const loopMin = 3
const loopMax = 8
/** Crashes in one recovery after another, and writes of the data disk before each. */
const roundsMax = 4
const writesBeforeMax = 5
const lullMicros = 200_000

export const drawings: ReadonlyMap<string, Drawing> = new Map<string, Drawing>([
  ['crash', (at, draw) => [drawCrash(draw.random.pick(draw.nodes), at, draw)]],
  ['crash-in-write', drawCrashInWrite],
  ['crash-majority', (at, draw) => drawCrashes(drawMajority(draw), at, draw)],
  ['crash-all', (at, draw) => drawCrashes(draw.nodes, at, draw)],
  ['crash-loop', drawCrashLoop],
  ['set-down', drawSetDown],
  ['crash-in-recovery', drawCrashInRecovery],
  ['stop', (at, draw) => [{ ...drawCrash(draw.random.pick(draw.nodes), at, draw), kind: 'stop' }]],
  ['pause', (at, draw) => [drawPause('pause', at, draw)]],
  ['stall', (at, draw) => [drawPause('stall', at, draw)]],
  ['stall-in-read', (at, draw) => [drawPause('stall-in-read', at, draw)]],
  ['suspend', drawSuspend],
  ['clog', drawClog],
  ['swizzle', drawSwizzle],
  ['split', drawSplit],
  ['one-way', drawOneWay],
  ['bridge', drawBridge],
  ['ring', drawRing],
  ['isolate-leader', drawIsolateLeader],
  ['isolate-client', drawIsolateClient],
  [
    'reset',
    (at, draw) => [{ kind: 'reset', atMicros: at, between: draw.random.pick(listWays(draw)) }],
  ],
  ['lose-reply', (at, { random, nodes }) => [makeLostReply(random.pick(nodes), at)]],
  ['echo', drawEcho],
  ['slow-node', (at, draw) => [drawSlow('slow-node', at, draw)]],
  ['slow-disk', (at, draw) => [drawSlow('slow-disk', at, draw)]],
  ['slow-read', drawSlowRead],
  ['fsync-error', drawFsyncError],
  ['no-space', drawNoSpace],
  ['torn-write', drawTornWrite],
  ['bit-rot', drawBitRot],
  ['rot-in-outage', drawRotInOutage],
  ['journal-rot', drawJournalRot],
  ['rot-of-keys', drawRotOfKeys],
  ['misdirected-write', drawMisdirectedWrite],
  ['stale-disk', drawStaleDisk],
  ['empty-disk', drawEmptyDisk],
  ['swapped-disks', drawSwappedDisks],
  ['jump-forward', (at, draw) => drawJump(at, draw, 'both')],
  ['jump-back', (at, draw) => drawJump(at, draw, 'back')],
  ['wall-jump', (at, draw) => drawJump(at, draw, 'wall')],
  ['strobe', drawStrobe],
  ['storm', (at, draw) => [{ kind: 'storm', atMicros: at, lengthMicros: drawSpell(draw) }]],
  ['huge', (at, draw) => [{ kind: 'huge', atMicros: at, lengthMicros: drawSpell(draw) }]],
  ['client-death', drawClientDeath],
  ['gateway-death', drawGatewayDeath],
  ['gateway-pause', drawGatewayPause],
])

type Crash = Extract<Fault, { readonly kind: 'crash' }>

function drawCrash(node: string, atMicros: number, { random, rates }: Draw): Crash {
  return { kind: 'crash', atMicros, node, downMicros: random.exponential(rates.downMeanMicros) }
}

function drawCrashes(nodes: readonly string[], atMicros: number, draw: Draw): Fault[] {
  return nodes.map((node) => drawCrash(node, atMicros, draw))
}

function drawMajority({ random, nodes }: Draw): readonly string[] {
  return random.shuffle(nodes).slice(0, Math.floor(nodes.length / 2) + 1)
}

function drawCrashInWrite(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  // Two writes are often begun in one moment: a little later both are under way.
  const inWriteMicros = random.chance(half) ? 0 : random.int(1, 200)
  const inWrite = { ...drawCrash(random.pick(nodes), atMicros, draw), inWriteMicros }
  const inSwitch = random.int(0, 4)
  const later = { ...drawCrash(random.pick(nodes), atMicros, draw), inSwitch }
  return [inWrite, { ...later, name: 'crash in switch' }]
}

/**
 * A whole replica set is gone: it is down, or cut off from all clients. Now and then the other
 * sets, which all clients turn to then, falter meanwhile: for some moments their nodes do not hear
 * one another.
 */
function drawSetDown(atMicros: number, draw: Draw): Fault[] {
  const { random, sets } = draw
  if (sets.length === 1) return []
  const set = random.pick(sets)
  const lengthMicros = random.exponential(random.pick([million / 2, 4 * million]))
  const gone = drawGone(set, atMicros, lengthMicros, draw)
  if (random.chance(half)) return gone
  const among = listWays(draw).filter((way) =>
    sets.some((one) => one !== set && way.every((end) => one.includes(end))),
  )
  return [...gone, ...falter(atMicros, lengthMicros, among, draw)]
}

function falter(
  atMicros: number,
  lengthMicros: number,
  ways: readonly Way[],
  { random }: Draw,
): Fault[] {
  const meanMicros = random.pick([million / 5, million])
  return Array.from({ length: random.int(1, 3) }, () => ({
    kind: 'cut',
    name: 'set-falters',
    atMicros: atMicros + random.int(0, lengthMicros),
    ways,
    lengthMicros: random.exponential(meanMicros),
    resets: false,
  }))
}

function drawGone(
  set: readonly string[],
  atMicros: number,
  lengthMicros: number,
  draw: Draw,
): Fault[] {
  const { random } = draw
  if (random.chance(half)) {
    const downMicros = lengthMicros
    return set.map((node) => ({ kind: 'crash', atMicros, node, downMicros }))
  }
  const ways = listWays(draw).filter(([from, to]) => set.includes(from) !== set.includes(to))
  return [{ kind: 'cut', atMicros, lengthMicros, ways, resets: true }]
}

/** Down again as soon as it is up, or a moment later. */
function drawCrashLoop(atMicros: number, { random, nodes }: Draw): Fault[] {
  const node = random.pick(nodes)
  const times = random.int(loopMin, loopMax)
  const faults: Fault[] = []
  let at = atMicros
  for (let i = 0; i < times; i++) {
    const downMicros = random.chance(half) ? 0 : random.exponential(20_000)
    faults.push({ kind: 'crash', atMicros: at, node, downMicros })
    at += downMicros + 1 + random.exponential(random.pick([100, 10_000, 200_000]))
  }
  return faults
}

/** Down again while what its log gave back goes to the data disk, batch by batch. */
function drawCrashInRecovery(atMicros: number, { random, nodes }: Draw): Fault[] {
  const where = { atMicros, node: random.pick(nodes) }
  const lengthMicros = random.exponential(random.pick([100_000, 500_000]))
  const downMicros = random.pick([0, 1_000, 300_000])
  const writesBefore = Array.from({ length: random.int(1, roundsMax) }, () =>
    random.int(1, writesBeforeMax),
  )
  const lullAtMicros = atMicros + Math.round(lengthMicros / 2)
  // A request meanwhile brings a group up to date all the same: mostly, clients send none.
  const lull = { kind: 'idle', name: 'lull', atMicros: lullAtMicros } as const
  const crashes = {
    kind: 'crash-in-recovery',
    ...where,
    lengthMicros,
    downMicros,
    writesBefore,
  } as const
  return random.chance(700_000)
    ? [crashes, { ...lull, lengthMicros: lengthMicros + downMicros + lullMicros }]
    : [crashes]
}

function drawPause(
  kind: 'pause' | 'stall' | 'stall-in-read',
  atMicros: number,
  { random, nodes, rates }: Draw,
): Fault {
  const lengthMicros = random.exponential(rates.pauseLengthMeanMicros)
  return { kind, atMicros, node: random.pick(nodes), lengthMicros }
}

/** Too short to be noticed, or about as long as leases last, or longer. */
function drawSuspend(atMicros: number, { random, nodes }: Draw): Fault[] {
  const lengthMicros = random.exponential(random.pick([30_000, 300_000, 2 * million]))
  return [{ kind: 'suspend', atMicros, node: random.pick(nodes), lengthMicros }]
}

function drawCut(atMicros: number, ways: readonly Way[], { random, rates }: Draw): Fault[] {
  const lengthMicros = random.exponential(rates.cutLengthMeanMicros)
  return [{ kind: 'cut', atMicros, lengthMicros, ways, resets: random.chance(rates.cutResets) }]
}

/** Two sides that do not hear each other; sometimes one side is a single node. */
function drawSplit(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes, clients } = draw
  const names = random.shuffle([...nodes, ...clients])
  const size = random.chance(half) ? 1 : random.int(1, names.length - 1)
  const side = new Set(names.slice(0, size))
  const ways = listWays(draw).filter(([from, to]) => side.has(from) !== side.has(to))
  return drawCut(atMicros, ways, draw)
}

/** Some ways out of one endpoint, or some ways into it, are cut; the other direction is not. */
function drawOneWay(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes, clients } = draw
  const name = random.pick([...nodes, ...clients])
  const isOut = random.chance(half)
  const ways = listWays(draw).filter(([from, to]) => (isOut ? from : to) === name)
  return drawCut(atMicros, random.shuffle(ways).slice(0, random.int(1, ways.length)), draw)
}

/** Two halves of the nodes, and one node that both hear. */
function drawBridge(atMicros: number, draw: Draw): Fault[] {
  const [, ...others] = draw.random.shuffle(draw.nodes)
  const left = new Set(others.slice(0, Math.ceil(others.length / 2)))
  const right = new Set(others.filter((node) => !left.has(node)))
  const ways = listWays(draw).filter(
    ([from, to]) => (left.has(from) && right.has(to)) || (right.has(from) && left.has(to)),
  )
  return drawCut(atMicros, ways, draw)
}

/** Each node hears its neighbours alone, in a ring of five; of three, the one before it alone. */
function drawRing(atMicros: number, draw: Draw): Fault[] {
  const ring = draw.random.shuffle(draw.nodes)
  const count = ring.length
  const place = (node: string): number => ring.indexOf(node)
  const ways = listWays(draw).filter(([from, to]) => {
    if (place(from) < 0 || place(to) < 0) return false
    const steps = (place(to) - place(from) + count) % count
    return count > 3 ? steps !== 1 && steps !== count - 1 : steps !== 1
  })
  return drawCut(atMicros, ways, draw)
}

function drawIsolateLeader(atMicros: number, { random, rates }: Draw): Fault[] {
  const lengthMicros = random.exponential(rates.cutLengthMeanMicros)
  return [{ kind: 'isolate-leader', atMicros, lengthMicros }]
}

function drawIsolateClient(atMicros: number, draw: Draw): Fault[] {
  const client = draw.random.pick(draw.clients)
  const ways = listWays(draw).filter(([from, to]) => from === client || to === client)
  return drawCut(atMicros, ways, draw)
}

function drawClog(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes, clients, rates } = draw
  const name = random.pick([...nodes, ...clients])
  const lengthMicros = random.exponential(rates.clogLengthMeanMicros)
  const isWhole = random.chance(300_000)
  const ways = listWays(draw).filter(([from]) => from === name && (isWhole || random.chance(half)))
  return [{ kind: 'clog', atMicros, lengthMicros, ways }]
}

/** Nodes are clogged one by one, and released in another order. */
function drawSwizzle(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes, rates } = draw
  const victims = random.shuffle(nodes).slice(0, random.int(2, nodes.length))
  const stepMicros = 1 + Math.round(rates.clogLengthMeanMicros / victims.length)
  const endsMicros = random
    .shuffle(victims.map((_, i) => (victims.length + i) * stepMicros))
    .map((end) => atMicros + end)
  return victims.map((node, i) => {
    const from = atMicros + i * stepMicros
    const lengthMicros = present(endsMicros[i], 'fault-drawings: one end a victim') - from
    const ways = listWays(draw).filter((way) => way.includes(node))
    return { kind: 'clog', atMicros: from, lengthMicros, ways }
  })
}

function makeLostReply(node: string, atMicros: number): Fault {
  return { kind: 'lose-reply', atMicros, node }
}

/**
 * Also to a node that has just restarted, as links come up: it gets frames sent to its former life.
 */
function drawEcho(atMicros: number, { random, nodes, rates }: Draw): Fault[] {
  const node = random.pick(nodes)
  const framesMax = random.pick([1, 4, 16])
  if (random.chance(half)) return [{ kind: 'echo', atMicros, node, framesMax }]
  const downMicros = random.pick([0, 5_000, 200_000])
  const end = rates.lengthMicros - rates.quietMicros
  const moments = [5_000, 20_000, 80_000, 300_000].map((after) => atMicros + downMicros + after)
  return [
    { kind: 'crash', name: 'crash before echo', atMicros, node, downMicros },
    ...moments
      .filter((moment) => moment < end)
      .map((moment): Fault => ({ kind: 'echo', atMicros: moment, node, framesMax: 16 })),
  ]
}

function drawSlow(kind: 'slow-node' | 'slow-disk', atMicros: number, draw: Draw): Fault {
  const { random, nodes } = draw
  const extraMicros = random.pick([5_000, 50_000, 400_000])
  return { kind, atMicros, node: random.pick(nodes), lengthMicros: drawSpell(draw), extraMicros }
}

/** As long as messages take, about, or much longer: a lease, a pin, a page may end meanwhile. */
function drawSlowRead(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const disk = random.chance(800_000) ? 'data' : 'log'
  const extraMicros = random.pick([2_000, 50_000, 400_000])
  const node = random.pick(nodes)
  return [{ kind: 'slow-read', atMicros, node, disk, lengthMicros: drawSpell(draw), extraMicros }]
}

function drawFsyncError(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const { node, downMicros } = drawCrash(random.pick(nodes), atMicros, draw)
  return [{ kind: 'fsync-error', atMicros, node, downMicros, disk: drawDisk(draw) }]
}

function drawNoSpace(atMicros: number, draw: Draw): Fault[] {
  const node = draw.random.pick(draw.nodes)
  const lengthMicros = drawSpell(draw)
  return [{ kind: 'no-space', atMicros, node, lengthMicros, disk: drawDisk(draw) }]
}

function drawTornWrite(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const { node, downMicros } = drawCrash(random.pick(nodes), atMicros, draw)
  return [{ kind: 'torn-write', atMicros, node, downMicros, kept: random.int(0, million - 1) }]
}

/** Damage of the last value of a disk, in parts per million of all damage. */
const lastRate = 150_000

function drawBitRot(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const disk = drawDisk(draw)
  // The last value of a log is what it remembers of peers.
  const place = random.chance(lastRate) ? million : drawPlace(draw)
  const node = random.pick(nodes)
  const rot = { kind: 'bit-rot', atMicros, node, disk, place, bit: drawBit(draw) } as const
  if (disk !== 'data' || !random.chance(half)) return [rot]
  // In a row of another node, too: mostly of another group.
  const other = { ...rot, node: random.pick(nodes), place: drawPlace(draw), bit: drawBit(draw) }
  return [rot, other].map((one): Fault => ({ ...one, inRows: 'bit' }))
}

/** Power fails everywhere, and one log loses its last writes. No node knows yet which of them are chosen, and all request votes on them. */
function drawRotInOutage(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const node = random.pick(nodes)
  const rot = Array.from({ length: random.int(1, 4) }, (): Fault => {
    const place = random.int(random.pick([900_000, 990_000]), million - 1)
    const bit = drawBit(draw)
    return { kind: 'bit-rot', atMicros, node, disk: 'log', place, bit, isInValues: true }
  })
  return [...rot, ...drawCrashes(nodes, atMicros + 1, draw)]
}

/** Of damaged batches, in parts per million: nothing of them can be made out. */
const illegibleRate = 400_000
/** The last ones stand there alone, and nothing tells of them but what is left. */
const endRate = 300_000

const diesMendingRate = 400_000

function drawJournalRot(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const { node, downMicros } = drawCrash(random.pick(nodes), atMicros, draw)
  const place = random.chance(endRate) ? random.int(950_000, million - 1) : drawPlace(draw)
  const how = { place, bit: drawBit(draw), passedOver: random.pick([0, 1, 4]) }
  const isIllegible = random.chance(illegibleRate) ? ({ isIllegible: true } as const) : {}
  const diesMending = random.chance(diesMendingRate) ? ({ diesMending: true } as const) : {}
  const who = { kind: 'journal-rot', atMicros, node, downMicros } as const
  return [{ ...who, ...how, ...isIllegible, ...diesMending }]
}

/** Keys of one data disk are not shown any more; in half of the cases of all disks, in one outage. */
function drawRotOfKeys(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const struck = random.chance(half) ? nodes : [random.pick(nodes)]
  const place = drawPlace(draw)
  const bit = hiddenEvery * random.int(0, million)
  return struck.map((node) => ({ kind: 'bit-rot', atMicros, node, disk: 'data', place, bit }))
}

function drawMisdirectedWrite(atMicros: number, draw: Draw): Fault[] {
  const node = draw.random.pick(draw.nodes)
  const disk = drawDisk(draw)
  const [from, to] = [drawPlace(draw), drawPlace(draw)]
  return [{ kind: 'misdirected-write', atMicros, node, disk, from, to }]
}

function drawStaleDisk(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const { node, downMicros } = drawCrash(random.pick(nodes), atMicros, draw)
  const disk = random.chance(half) ? 'both' : 'data'
  const imageAtMicros = random.int(0, atMicros)
  return [{ kind: 'stale-disk', atMicros, node, downMicros, disk, imageAtMicros }]
}

function drawEmptyDisk(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes } = draw
  const { node, downMicros } = drawCrash(random.pick(nodes), atMicros, draw)
  return [
    { kind: 'empty-disk', atMicros, node, downMicros, disk: random.chance(half) ? 'both' : 'data' },
  ]
}

function drawSwappedDisks(atMicros: number, draw: Draw): Fault[] {
  const [a, b] = draw.random.shuffle(draw.nodes)
  if (a === undefined || b === undefined) return []
  return [{ kind: 'swapped-disks', atMicros, nodes: [a, b], lengthMicros: drawSpell(draw) }]
}

function drawJump(atMicros: number, draw: Draw, what: 'both' | 'back' | 'wall'): Fault[] {
  const { random, nodes, rates } = draw
  const micros = random.int(1, rates.jumpMicrosMax)
  const wallMicros = what === 'back' ? -micros : micros
  const monotonicMicros = what === 'both' ? micros : 0
  return [{ kind: 'clock-jump', atMicros, node: random.pick(nodes), wallMicros, monotonicMicros }]
}

function drawStrobe(atMicros: number, draw: Draw): Fault[] {
  const { random, nodes, rates } = draw
  const wallMicros = random.int(-rates.jumpMicrosMax, rates.jumpMicrosMax)
  const lengthMicros = drawSpell(draw)
  const everyMicros = random.pick([1_000, 20_000, 300_000])
  const node = random.pick(nodes)
  return [{ kind: 'clock-strobe', atMicros, node, lengthMicros, wallMicros, everyMicros }]
}

function drawClientDeath(atMicros: number, { random, clients, rates }: Draw): Fault[] {
  const downMicros = random.exponential(rates.downMeanMicros)
  return [{ kind: 'client-death', atMicros, client: random.pick(clients), downMicros }]
}

function drawGatewayDeath(atMicros: number, draw: Draw): Fault[] {
  const { gateways: clients } = draw
  return clients.length === 0 ? [] : drawClientDeath(atMicros, { ...draw, clients })
}

function drawGatewayPause(atMicros: number, { random, gateways, rates }: Draw): Fault[] {
  if (gateways.length === 0) return []
  const lengthMicros = random.exponential(rates.pauseLengthMeanMicros)
  return [{ kind: 'client-pause', atMicros, client: random.pick(gateways), lengthMicros }]
}

function drawSpell({ random, rates }: Draw): number {
  return random.exponential(rates.spellMeanMicros)
}

function drawDisk({ random }: Draw): DiskName {
  return random.chance(half) ? 'log' : 'data'
}

function drawPlace({ random }: Draw): number {
  return random.int(0, million - 1)
}

function drawBit({ random }: Draw): number {
  return random.int(0, million * 8)
}

/** Both directions between nodes, between nodes and clients, and between clients and gateways. */
function listWays({ nodes, clients, gateways }: Draw): readonly Way[] {
  const between = nodes.flatMap((from) =>
    nodes.filter((to) => to !== from).map((to): Way => [from, to]),
  )
  const web = clients.filter((client) => !gateways.includes(client))
  return [...between, ...bothWays(nodes, clients), ...bothWays(gateways, web)]
}

function bothWays(inside: readonly string[], around: readonly string[]): readonly Way[] {
  return inside.flatMap((one) =>
    around.flatMap((other): Way[] => [
      [one, other],
      [other, one],
    ]),
  )
}
