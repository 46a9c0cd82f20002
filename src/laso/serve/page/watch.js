// A training, epoch by epoch.
import { ask, element, trying } from './ask.js'

const WAIT = 700 // milliseconds between two questions
const epochs = []

function show(number) {
  const row = epochs[number]
  if (!row) return
  element('epoch').value = number
  element('epoch-picture').innerHTML = row.picture ?? ''
  element('epoch-verdict').textContent = row.verdict ?? ''
}

function add(row) {
  const last = Number(element('epoch').value) === epochs.length - 1 || !epochs.length
  epochs.push(row)
  const line = element('epochs').insertRow()
  const score = row.score === null ? '' : (100 * row.score).toFixed(2)
  for (const cell of [row.epoch, row.loss.toFixed(4), score]) line.insertCell().textContent = cell
  element('epoch').add(new Option(row.epoch, epochs.length - 1))
  if (last) show(epochs.length - 1)
}

// Follows a training to its end; returns at once if there is none.
export async function follow(ended) {
  element('epoch').addEventListener('change', () => show(Number(element('epoch').value)))
  for (;;) {
    const sentence = Number(element('watched').value) - 1
    const told = await trying(() => ask('training', { known: epochs.length, sentence }))
    if (told) {
      if (told.state === 'none') return
      element('training-part').hidden = false
      element('training-text').textContent = told.text
      told.epochs.forEach(add)
      if (told.state === 'ended') {
        element('training-part').open = false
        return ended()
      }
    }
    await new Promise((resolve) => setTimeout(resolve, WAIT))
  }
}
