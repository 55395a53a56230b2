package mediagate

// UploadFolder is where the media lie in our bucket that came within requests.
const UploadFolder = "uploads/"

// UploadKey is the object key of one; id is unique within the account.
func UploadKey(accountID, id string) string { return UploadFolder + accountID + "/" + id }
