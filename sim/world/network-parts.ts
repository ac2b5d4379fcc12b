/** The parts that a simulated network is made of. */
import type { Coverage } from '../coverage.ts'
import type { Weather } from './weather.ts'
import type { World } from './world.ts'

export interface FrameCodec<Frame> {
  encode(frame: Frame): Uint8Array
  /** Undefined when the bytes are not a frame: between the world's own nodes that is a bug. */
  decode(bytes: Uint8Array): Frame | undefined
  /** Whether it asks for something, or answers: copies of others mean nothing. */
  hasContent?(frame: Frame): boolean
  /** Whether it asks for something that could be done twice. */
  asks?(frame: Frame): boolean
  /** The numbers of requests that it says were refused, so that nothing happened. */
  refused?(frame: Frame): readonly number[]
  /** The numbers of the requests that it brings. */
  requests?(frame: Frame): readonly number[]
  /** Of how many requests, answers or messages it is made; absent: of one. */
  messagesIn?(frame: Frame): number
}

/** Sees frames at the two moments that matter to a checker. */
export interface FrameObserver<Frame> {
  onSent(from: string, to: string, frame: Frame, bytes: number): void
  onDelivered(from: string, to: string, frame: Frame, sentMicros: number): void
  /** The endpoint has done what a frame asks of it. */
  onHandled?(to: string, frame: Frame): void
}

export interface NetworkParts<Frame> {
  readonly world: World
  readonly weather: Weather
  readonly coverage: Coverage
  readonly codec: FrameCodec<Frame>
  readonly observer: FrameObserver<Frame>
  /** Tells the streams and labels of several networks apart. */
  readonly name: string
  /** A frame arrives once or not at all, and never in another life of its link. */
  readonly isStream?: boolean
  /**
   * A second copy arrives only while its link lives. A refusal over a link is therefore final: the
   * link is one connection, and the request has no effect later.
   */
  readonly keepsCopies?: boolean
  /** Frames are kept for a while, for `echo`. */
  readonly hasEchoes?: boolean
}
