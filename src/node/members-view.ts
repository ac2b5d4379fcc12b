/** The answers of a node about the voters of its replica set, as commands and other nodes read them. */
import { isObject } from '../adapters/node-asks.ts'
import { isVersion } from '../base/cluster-version.ts'

export interface MemberView {
  readonly node: string
  readonly standing: string
  readonly isAlive: boolean
  /** Whether it is a read-only member, which has no vote; absent: it is not. */
  readonly isReader?: boolean
  /** Absent: the node has not told it. */
  readonly epoch?: number
  readonly storeId?: string
  /** Absent: the configuration of the node that answers does not say them. */
  readonly region?: string
  readonly zone?: string
}

/** A change of the voters. */
export interface ChangeView {
  readonly number: number
  readonly kind:
    'replace' | 'add' | 'remove' | 'renew' | 'add-reader' | 'promote' | 'demote' | 'recover'
  readonly phase: 'copying' | 'sealing' | 'done' | 'given-up'
  /** Absent of `renew` and `recover`. */
  readonly node?: string
  /** Of kinds with a store that comes: `replace`, `add`, `add-reader` and `promote`; as `store`. */
  readonly seat?: number
  /** Absent until the empty store has come. */
  readonly store?: string
  /** As the phase began, in ISO 8601. */
  readonly since: string
}

export interface MembersView {
  readonly epoch: number
  readonly members: readonly MemberView[]
  /** The last change; absent: there was none. */
  readonly change?: ChangeView
  readonly canLose: number
  /** The cluster version in force at the node; absent: its build knows of none. */
  readonly version?: number
}

/** Undefined for an answer of another form. */
export function readMembers(body: Readonly<Record<string, unknown>>): MembersView | undefined {
  const { epoch, members, change, canLose, version } = body
  if (typeof epoch !== 'number' || typeof canLose !== 'number') return undefined
  if (!Array.isArray(members) || !members.every(isMember)) return undefined
  const view = { epoch, members, canLose, ...(isVersion(version) && { version }) }
  if (change === undefined) return view
  return isChange(change) ? { ...view, change } : undefined
}

function isMember(value: unknown): value is MemberView {
  if (!isObject(value)) return false
  const { node, standing, isAlive, isReader, epoch, storeId, region, zone } = value
  const hasNames = typeof node === 'string' && typeof standing === 'string'
  const isKnown = isReader === undefined || typeof isReader === 'boolean'
  const texts = [storeId, region, zone]
  const hasKind = isKnown && typeof isAlive === 'boolean'
  return hasNames && hasKind && isNumber(epoch) && texts.every(isText)
}

const kinds: readonly unknown[] = [
  ...['replace', 'add', 'remove', 'renew', 'add-reader', 'promote', 'demote', 'recover'],
]
const phases: readonly unknown[] = ['copying', 'sealing', 'done', 'given-up']

export function isChange(value: unknown): value is ChangeView {
  if (!isObject(value)) return false
  const { number, kind, phase, node, seat, store, since } = value
  const hasNames = typeof number === 'number' && kinds.includes(kind) && phases.includes(phase)
  const isOfSet = kind === 'renew' || kind === 'recover'
  const isOfNode = isOfSet || typeof node === 'string'
  const isWithoutSeat = isOfSet || kind === 'remove' || kind === 'demote'
  const hasSeat = isWithoutSeat || typeof seat === 'number'
  return hasNames && isOfNode && hasSeat && isText(store) && typeof since === 'string'
}

function isNumber(value: unknown): boolean {
  return value === undefined || typeof value === 'number'
}

function isText(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

/** Whether the change goes on. */
export function isGoingOn(change: ChangeView | undefined): change is ChangeView & {
  readonly phase: 'copying' | 'sealing'
} {
  return change?.phase === 'copying' || change?.phase === 'sealing'
}
