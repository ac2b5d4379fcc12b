/**
 * The coverage of a run: faults that really struck, and marked branches of the code. A campaign in
 * which something expected never happened proves nothing and fails (META-2).
 */
import { isOn, type Switches } from './faults/swarm-faults.ts'

/** The names counted when a fault strikes, by the name that switches the fault. */
const countedBySwitch: Readonly<Record<string, readonly string[]>> = {
  crash: ['crash'],
  'crash-in-write': ['crash-in-write', 'crash in switch'],
  'crash-loop': ['crash-loop'],
  'crash-in-recovery': ['crash-in-recovery'],
  'set-down': ['set-down'],
  'crash-majority': ['majority-down'],
  'crash-all': ['all-down'],
  stop: ['stop'],
  pause: ['pause'],
  stall: ['stall'],
  'stall-in-read': ['stall-in-read'],
  suspend: ['suspend'],
  drop: ['drop'],
  duplicate: ['duplicate'],
  'late-duplicate': ['late-duplicate'],
  tail: ['tail'],
  far: ['far'],
  reorder: ['reorder'],
  survivor: ['survivor', 'old-incarnation'],
  clog: ['clog'],
  swizzle: ['swizzle'],
  split: ['split', 'cut'],
  'one-way': ['one-way'],
  bridge: ['bridge'],
  ring: ['ring'],
  'isolate-leader': ['isolate-leader'],
  'lone-write': ['lone-write', 'cells: a write waited at one node while an index was built'],
  'lost-data': ['lost-data', 'lost-data data', 'peer_behind_the_log', 'restored_from_peers'],
  'isolate-client': ['isolate-client'],
  reset: ['reset'],
  'lose-reply': ['lost-reply'],
  echo: ['crash before echo', 'echo', 'echo after a moment', 'echo after seconds'],
  'slow-node': ['slow-node'],
  'slow-disk': ['slow-disk'],
  'slow-read': ['slow-read'],
  'fsync-error': ['fsync-error'],
  'no-space': ['no-space'],
  'torn-write': ['torn-write'],
  'bit-rot': ['bit-rot log', 'bit-rot data', 'scrub_found_damage_in_log'],
  'rot-in-outage': ['rot-in-outage log'],
  'journal-rot': [
    ...['journal-rot', 'damaged_journal_mended', 'flush_lost_with_journal'],
    ...['peer_memory_lost_with_journal', 'crash in mending'],
  ],
  'rot-of-keys': ['rot-of-keys data'],
  'misdirected-write': ['misdirected-write log', 'misdirected-write data'],
  'stale-disk': ['stale-disk both', 'stale-disk data'],
  'empty-disk': ['empty-disk both', 'empty-disk data'],
  'swapped-disks': ['swapped-disks'],
  offset: ['offset'],
  drift: ['drift'],
  'clock-behind': ['a clock that is behind was noticed', 'stamped_ahead_of_own_clock'],
  'jump-forward': ['jump-forward'],
  'jump-back': ['jump-back'],
  'wall-jump': ['wall-jump'],
  strobe: ['strobe'],
  renew: ['renew', 'gate_passed'],
  replace: ['replace', 'replaced store votes'],
  'mistaken-replace': ['mistaken-replace', 'change_given-up'],
  add: ['add', 'added as a read-only member'],
  remove: ['remove', 'removed node ended'],
  demote: ['demote', 'read-only member votes again'],
  'two-builds': ['change-build', 'finalized', 'version_applied', 'upgraded'],
  storm: ['storm'],
  huge: ['huge', 'huge body'],
  quiet: ['idle', 'away'],
  'gateway-death': ['gateway-death', 'gateway: stopped'],
  'gateway-pause': ['gateway-pause'],
  'client-death': ['client-death'],
  priorities: ['priorities', 'demoted'],
  'turn-costs': ['waited for a turn'],
  'read-waits': ['waited for a read'],
}

/** Events that happen whatever is switched off: damage that is noticed, writes that are lost in a crash. */
const always: readonly string[] = [
  ...['gateway: PUT 201', 'gateway: PUT 200', 'gateway: PUT 409', 'gateway: PUT 504'],
  ...['gateway: batch of puts', 'gateway: batch of gets', 'gateway: query of an index'],
  ...['restart', 'lost-write', 'put again', 'intent sent again'],
  'at work before others have told their clocks',
  ...['cells: any row', 'cells: any versions', 'cells: any log', 'cells: another page'],
  ...['cells: batch of gets', 'cells: batch of logs', 'cells: any gets', 'cells: any logs'],
  ...['cells: log since a time', 'intents: committed', 'intents: expired', 'intents: told none'],
  ...['cells: an answer of an index was to have what stood'],
  ...['tables: an answer was to have what stood, IDX-10'],
  ...['tables: an answer was to have what stood, IDX-6'],
  ...[
    'tables: an index looked at when it was ready',
    'tables: rows changed while a global index was filled',
    'tables: rows changed while a local index was filled',
    'tables: read of before it was filled unavailable',
  ],
  ...['cells: an index looked at when it was ready', 'cells: a row filled into an index'],
  ...['cells: pages of an index compared', 'cells: sorted pages of an index compared'],
  ...['intents: unknown-outcome', 'intents: told committed', 'intents: told forgotten'],
  ...['tables: committed', 'tables: read at', 'tables: read held open', 'tables: run again'],
  ...['queues: handled', 'queues: batch', 'queues: delayed', 'queues: dead', 'queues: redriven'],
  ...['queues: dead again', 'queues: redriven while handlers fail'],
  ...['queues: own delayed called', 'queues: delayed called'],
  ...['triggers: replay forgets', 'triggers: a shard was given on in order'],
  ...['queues: handler died', 'queues: handled after failures'],
  ...['tables: opened version 1', 'tables: opened version 2', 'tables: index', 'tables: tree'],
]

/** The counts that a campaign must have seen at work, with the faults that were not switched off. */
export function expectedCounts(switches: Switches = {}): readonly string[] {
  const names = Object.keys(countedBySwitch).filter((name) => isOn(name, switches))
  const isWhole = switches.only === undefined && switches.without === undefined
  return [...names.flatMap((name) => countedBySwitch[name] ?? []), ...(isWhole ? always : [])]
}

export class Coverage {
  readonly #countByName = new Map<string, number>()

  count(name: string, times = 1): void {
    this.#countByName.set(name, (this.#countByName.get(name) ?? 0) + times)
  }

  /** How often each thing happened, in the order of their names. */
  counts(): Readonly<Record<string, number>> {
    const rows = [...this.#countByName].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return Object.fromEntries(rows)
  }
}
