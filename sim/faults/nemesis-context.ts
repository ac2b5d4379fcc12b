/** The parts that carry out faults have at hand. They draw nothing. */
import type { Atlas } from './atlas.ts'
import type { MachineClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { DiskImage } from '../world/disk.ts'
import type { DiskName, Fault } from './fault.ts'
import type { Load } from '../workloads/load.ts'
import type { HostDisks } from '../cluster/node-host.ts'
import type { Weather } from '../world/weather.ts'
import type { World } from '../world/world.ts'
import type { MembersPort } from '../../src/members/report.ts'

/** A node, and the actions of the nemesis on it. */
export interface Victim {
  readonly name: string
  readonly disks: HostDisks
  readonly machine: MachineClock
  /** It is out of service for the rest of the run. */
  readonly isRetired: boolean
  /** The last cluster version that the build knows which its next start runs. */
  build: number
  isUp(): boolean
  crash(): void
  /** Lets it end by itself, which takes a while; `onEnded` comes unless it crashes meanwhile. */
  stop(onEnded: () => void): void
  /** Calls `strike` when a write of its disks, or of this one, begins next; once a process. */
  onNextWrite(strike: () => void, disk?: DiskName): void
  /** Calls `strike` when it puts a group aside for a snapshot next, in whatever life of it. */
  onNextSwitch(strike: () => void): void
  /** Calls `strike` at the next read of its disks; once a process. */
  onNextRead(strike: () => void): void
  /** Starts it, unless it is up, held or retired, or waits for a seat. */
  restart(): void
  /** It and its disks are gone for good: it stays down until it gets a seat, whatever it was before. */
  lose(): void
  /** It has no part in the cluster, and no store: it stays down until it gets a seat. */
  becomeSpare(): void
  /** Starts it on its empty disks, as the store that is to have this seat. */
  takeSeat(seat: number): void
  hold(): void
  release(): void
  pause(lengthMicros: number): void
  resume(): void
  /** A pause of the whole machine: its monotonic clock stands still. */
  suspend(lengthMicros: number): void
  /** A pause that begins when its clock is read next. */
  stall(lengthMicros: number, onStruck: () => void): void
}

/** The other parts of a run that faults can hurt. */
export interface Surroundings {
  readonly world: World
  readonly weather: Weather
  readonly coverage: Coverage
  readonly atlas: Atlas
  readonly load: Load
  readonly victims: readonly Victim[]
  readonly clients: readonly string[]
  resetLink(a: string, b: string): void
  /** The next answer of this node to a client is lost with its link. */
  loseNextReply(node: string): void
  /** Repeats frames sent to this node lately, up to this many a way. */
  echo(node: string, framesMax: number): void
  /** The leader of the last written group, if a node knows it. */
  leader(): string | undefined
  /** The data disk of this node holds something else now. */
  onDataReplaced(node: string): void
  /** Both disks of this node are empty, and another store is to have its vote. */
  onStoreLost(node: string): void
  /** The node as an operator asks it to change the voters of its set; undefined: it is not open. */
  members(node: string): MembersPort | undefined
  /** The log disk of this node is of another time: it must not be heard again. */
  onForgotten(node: string): void
  killClient(client: string, downMicros: number): void
  pauseClient(client: string, lengthMicros: number): void
}

/** A node's disks as they once were. */
export interface DiskImages {
  readonly log: DiskImage
  readonly data: DiskImage
}

export interface Context extends Surroundings {
  /** Kept for faults that will put them back. */
  readonly images: Map<Fault, DiskImages>
  /** Any node of these sets, by their first nodes, may have an entry that no earlier build knows: none goes back to one. */
  readonly finalized: Set<string>
  /** Some node has gone back to an earlier build: a peer may take it for the build before for a while. */
  hasGoneBack: boolean
  /** The node, if it is one of the run's and in service. */
  victim(node: string): Victim | undefined
  /** The node, if it is up. */
  standing(node: string): Victim | undefined
  /** Unless the world has healed by then. */
  after(delayMicros: number, label: string, act: () => void): void
  /** Down now, and started again later; another crash meanwhile changes nothing. */
  strikeDown(victim: Victim, downMicros: number): void
  /** The fault has struck. */
  count(fault: Fault): void
}

export type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { readonly kind: Kind }>
