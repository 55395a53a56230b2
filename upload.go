package mediagate

// UploadFolder is where the media lie in our bucket that came within requests.
const UploadFolder = "uploads/"

// UploadComing stands for the link of an upload where an adapter is only asked
// about a request.
const UploadComing = "https://uploads.invalid/media"

// UploadKey is the object key of one; id is unique within the account.
func UploadKey(accountID, id string) string { return UploadFolder + accountID + "/" + id }
