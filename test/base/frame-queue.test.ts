/** How what waits for one receiver is cut into frames. */
import { expect, test } from 'vitest'
import { FrameQueue } from '../../src/base/frame-queue.ts'

function framesOf(weights: readonly number[], messagesMax = 100): (readonly number[])[] {
  const queue = new FrameQueue<number>({ bytesMax: 10, messagesMax })
  for (const weight of weights) queue.add(weight, weight)
  expect(queue.bytes).toBe(weights.reduce((sum, weight) => sum + weight, 0))
  const frames: (readonly number[])[] = []
  while (!queue.isEmpty) {
    const { messages, bytes } = queue.takeFrame()
    expect(bytes).toBe(messages.reduce((sum, weight) => sum + weight, 0))
    frames.push(messages)
  }
  expect(queue.bytes).toBe(0)
  return frames
}

test('a frame holds as many messages as weigh no more than it may, in their order', () => {
  expect(framesOf([])).toEqual([])
  expect(framesOf([4, 6])).toEqual([[4, 6]])
  expect(framesOf([4, 6, 1, 9, 1])).toEqual([[4, 6], [1, 9], [1]])
  expect(framesOf([9, 2, 8, 0, 1])).toEqual([[9], [2, 8, 0], [1]])
})

test('a message that alone weighs more than a frame may is a frame by itself', () => {
  expect(framesOf([11])).toEqual([[11]])
  expect(framesOf([11, 0])).toEqual([[11], [0]])
  expect(framesOf([1, 11, 1])).toEqual([[1], [11], [1]])
})

test('a frame holds no more messages than it may, however little they weigh', () => {
  expect(framesOf([0, 0, 0, 0, 0], 2)).toEqual([[0, 0], [0, 0], [0]])
  expect(framesOf([0, 0], 2)).toEqual([[0, 0]])
})

test('takeAll takes all messages at once, and later ones are in another frame', () => {
  const queue = new FrameQueue<string>({ bytesMax: 10, messagesMax: 100 })
  for (const message of ['a', 'b', 'c']) queue.add(message, 8)
  expect(queue.takeFrame()).toEqual({ messages: ['a'], bytes: 8 })
  expect(queue.takeAll()).toEqual({ messages: ['b', 'c'], bytes: 16 })
  queue.add('d', 1)
  expect(queue.takeFrame()).toEqual({ messages: ['d'], bytes: 1 })
  expect(queue.takeFrame()).toEqual({ messages: [], bytes: 0 })
})
