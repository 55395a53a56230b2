// What integrators have, pointed at the gateway: each path from its beginning.
import assert from 'node:assert/strict'
import OpenAI, {toFile} from 'openai'
import Anthropic from '@anthropic-ai/sdk'
import {GoogleGenAI} from '@google/genai'
import {createOpenAI} from '@ai-sdk/openai'
import {experimental_generateSpeech as generateSpeech, generateImage} from 'ai'

const [base, key, picture] = process.argv.slice(2)
const openai = new OpenAI({baseURL: `${base}/v1`, apiKey: key})
const refused = async (promise, status, param) => {
	const error = await promise.then(() => assert.fail('nothing was refused'), (error) => error)
	assert.equal(error.status, status, String(error))
	if (param) assert.equal(error.param, param, String(error))
	return error
}

const linkOf = (pictures) => pictures.data[0].url

const paths = {
	async models() {
		const ids = []
		for await (const model of openai.models.list()) ids.push(model.id)
		assert.ok(ids.includes('alpha-v3'))
		assert.equal((await openai.models.retrieve('alpha-v3')).id, 'alpha-v3')
		await refused(openai.models.retrieve('nothing'), 404)

		const anthropic = new Anthropic({baseURL: base, apiKey: key})
		assert.equal((await anthropic.models.retrieve('alpha-v3')).display_name, 'alpha-v3')
		const listed = []
		for await (const model of anthropic.models.list({limit: 3})) listed.push(model.id)
		assert.deepEqual(listed, ids)

		const google = new GoogleGenAI({apiKey: key, httpOptions: {baseUrl: base}})
		assert.equal((await google.models.get({model: 'alpha-v3'})).name, 'models/alpha-v3')
	},

	async video() {
		let video = await openai.videos.create({model: 'alpha-v3', prompt: 'a red boat', seconds: '5', size: '1280x720'})
		assert.equal(video.seconds, '5')
		while (video.status === 'queued' || video.status === 'in_progress') {
			await new Promise((resolve) => setTimeout(resolve, 300))
			video = await openai.videos.retrieve(video.id)
		}
		assert.equal(video.status, 'completed', JSON.stringify(video))
		const file = Buffer.from(await (await openai.videos.downloadContent(video.id)).arrayBuffer())
		assert.equal(file.subarray(4, 8).toString(), 'ftyp')
		const streamed = await fetch(`${base}/v1/videos/${video.id}/content?stream=true`, {headers: {Authorization: `Bearer ${key}`}, redirect: 'error'})
		assert.ok(Buffer.from(await streamed.arrayBuffer()).equals(file))
		const seen = []
		for await (const one of openai.videos.list({limit: 1, order: 'asc'})) seen.push(one.id)
		assert.ok(seen.includes(video.id))
		assert.deepEqual(await openai.videos.delete(video.id), {id: video.id, object: 'video.deleted', deleted: true})
		await refused(openai.videos.retrieve(video.id), 404, 'video_id')
	},

	async reference() {
		const input_reference = await toFile(Buffer.from(picture, 'base64'), 'cat.png', {type: 'image/png'})
		const video = await openai.videos.create({model: 'epsilon3.1-fast-official', prompt: 'the cat wakes', seconds: '4', input_reference})
		assert.equal(video.object, 'video')
		const inline = await openai.videos.create({
			model: 'alpha-v3', prompt: 'the cat wakes', input_reference: {image_url: `data:image/png;base64,${picture}`},
		})
		assert.equal(inline.object, 'video')
		const unnamed = new FormData()
		for (const [name, value] of [['model', 'alpha-v3'], ['prompt', 'the cat wakes'], ['audio', 'true'], ['metadata[reference]', 'mine']]) unnamed.append(name, value)
		unnamed.append('image_urls[]', linkOf(await openai.images.generate({model: 'theta-image-turbo', prompt: 'a cat'})))
		const form = await fetch(`${base}/v1/videos`, {method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: unnamed})
		assert.equal(form.status, 200, await form.text())
	},

	async refusals() {
		await refused(openai.videos.create({model: 'sora-2', prompt: 'a'}), 400, 'model')
		await refused(openai.videos.create({model: 'alpha-v3', prompt: 'a', seconds: '99'}), 400, 'seconds')
		await refused(openai.videos.create({model: 'alpha-v3', prompt: 'a', size: '1792x1024'}), 400, 'size')
		await refused(new OpenAI({baseURL: `${base}/v1`, apiKey: 'wrong'}).videos.list(), 401)
		await refused(openai.images.generate({model: 'theta-image-turbo', prompt: 'a', response_format: 'url', quality: 'hd'}), 400)
	},

	async pictures() {
		const linked = await openai.images.generate({model: 'theta-image-turbo', prompt: 'a red boat', size: '1024x1024', n: 1})
		assert.ok((await fetch(linked.data[0].url)).ok)
		const least = await openai.images.generate({model: 'theta-image-turbo', prompt: 'a red boat'})
		assert.ok((await fetch(linkOf(least))).ok)
		const image = await toFile(Buffer.from(picture, 'base64'), 'cat.png', {type: 'image/png'})
		const edited = await openai.images.edit({model: 'zeta-3.1-flash-image-preview', prompt: 'with a hat', image: [image, image], n: 1})
		assert.ok((await fetch(linkOf(edited))).ok)
		await refused(openai.images.edit({model: 'theta-image-turbo', prompt: 'a', image}), 400)
		const inline = await openai.images.generate({model: 'zeta-3.1-flash-image-preview', prompt: 'a red boat', response_format: 'b64_json', n: 2})
		assert.equal(inline.data.length, 2)
		for (const one of inline.data) assert.ok(Buffer.from(one.b64_json, 'base64').length > 100)
		const provider = createOpenAI({baseURL: `${base}/v1`, apiKey: key})
		const {image: made} = await generateImage({model: provider.image('theta-image-turbo'), prompt: 'a red boat', size: '1024x1024'})
		assert.ok(made.uint8Array.length > 100)
	},

	async speech() {
		const spoken = await openai.audio.speech.create({model: 'eta-4o-mini-tts', voice: 'alloy', input: 'hello'})
		assert.ok((await spoken.arrayBuffer()).byteLength > 100)
		const provider = createOpenAI({baseURL: `${base}/v1`, apiKey: key})
		const {audio} = await generateSpeech({model: provider.speech('eta-4o-mini-tts'), text: 'hello', voice: 'alloy'})
		assert.ok(audio.uint8Array.length > 100)
	},
}

let failed = false
for (const [name, path] of Object.entries(paths)) {
	try {
		await path()
	} catch (error) {
		failed = true
		console.error(`${name}: ${error.stack}`)
	}
}
process.exit(failed ? 1 : 0)
